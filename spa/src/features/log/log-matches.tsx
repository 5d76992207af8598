import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Empty } from "@/ui/empty";
import { Loaded } from "@/ui/loaded";
import { ScrollBox } from "@/ui/scroll-box";
import { LogFoot } from "./log-foot";
import { Line } from "./log-line";
import classes from "./log-tab.module.css";
import { type LogSource, matchesQuery } from "./queries";

interface LogMatchesProps {
  runId: string;
  source: LogSource;
  search: string;
  onOpen: (n: number) => void;
}

/** The lines that hold the text searched for; a line's number opens it among its neighbours. */
export function LogMatches({ runId, source, search, onOpen }: LogMatchesProps) {
  const query = useInfiniteQuery(matchesQuery(runId, source, search));
  return (
    <Loaded query={query} what="the matching lines" height={480}>
      {({ pages }) => {
        const lines = pages.flatMap((p) => p.lines);
        if (lines.length === 0) {
          return <Empty title={`No line holds “${search}”`}>Another source may.</Empty>;
        }
        return (
          <>
            <ScrollBox className={classes.box} label="Matching lines">
              {lines.map((line) => (
                <Line
                  key={line.n}
                  n={line.n}
                  line={line}
                  marked={false}
                  href={`?tab=log&source=${source}&line=${line.n}`}
                  onOpen={() => onOpen(line.n)}
                />
              ))}
              {query.hasNextPage && (
                <Button
                  variant="subtle"
                  m="sm"
                  loading={query.isFetchingNextPage}
                  onClick={() => query.fetchNextPage()}
                >
                  Load more
                </Button>
              )}
            </ScrollBox>
            <LogFoot total={pages[0]?.total ?? 0} unit={pages[0]?.total === 1 ? "match" : "matches"} />
          </>
        );
      }}
    </Loaded>
  );
}
