import { useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useRef, useState } from "react";
import type { LogLine, LogLines as Page } from "@/client/schema";
import { ScrollBox } from "@/ui/scroll-box";
import { LogFoot } from "./log-foot";
import { Line, lineHeight } from "./log-line";
import classes from "./log-tab.module.css";
import { chunkQuery, chunkSize, type LogSource } from "./queries";

interface LogLinesProps {
  runId: string;
  source: LogSource;
  tail: Page;
  line: number | undefined;
  growing: boolean;
  onLine: (n: number) => void;
}

/** All lines of a log, of which only those in sight exist on the page and are read from the server. */
export function LogLines({ runId, source, tail, line, growing, onLine }: LogLinesProps) {
  const box = useRef<HTMLElement>(null);
  const [following, setFollowing] = useState(line === undefined);
  const virtual = useVirtualizer({
    count: tail.total,
    getScrollElement: () => box.current,
    estimateSize: () => lineHeight,
    overscan: 20,
  });
  const items = virtual.getVirtualItems();
  const lineAt = useLineAt(runId, source, tail, (items[0]?.index ?? 0) + 1, (items.at(-1)?.index ?? 0) + 1);

  const toEnd = useCallback(() => {
    const element = box.current;
    if (element) {
      element.scrollTop = element.scrollHeight;
    }
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each new line moves the end
  useEffect(() => {
    if (following) {
      toEnd();
    }
  }, [following, tail.total, toEnd]);

  useEffect(() => {
    if (line !== undefined) {
      virtual.scrollToIndex(line - 1, { align: "center" });
    }
  }, [line, virtual.scrollToIndex]);

  // Whoever scrolls up wants to read; whoever comes back to the end wants to follow.
  const onScroll = () => {
    const element = box.current;
    if (element) {
      setFollowing(element.scrollHeight - element.scrollTop - element.clientHeight < 2 * lineHeight);
    }
  };

  return (
    <>
      <ScrollBox ref={box} className={classes.box} onScroll={onScroll} label="Lines of the log">
        <div className={classes.inner} style={{ height: virtual.getTotalSize() }}>
          <div style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
            {items.map(({ index }) => {
              const n = index + 1;
              return (
                <Line
                  key={n}
                  n={n}
                  line={lineAt(n)}
                  marked={n === line}
                  href={`?tab=log&source=${source}&line=${n}`}
                  onOpen={() => onLine(n)}
                />
              );
            })}
          </div>
        </div>
      </ScrollBox>
      <LogFoot
        total={tail.total}
        unit={tail.total === 1 ? "line" : following && growing ? "lines, following the end" : "lines"}
        action={following ? undefined : { label: growing ? "Follow the end" : "To the end", run: toEnd }}
      />
    </>
  );
}

/** Finds lines by number: the last ones come with the tail, the others in stretches as they come into sight. */
function useLineAt(runId: string, source: LogSource, tail: Page, first: number, last: number) {
  const tailStart = tail.lines[0]?.n ?? tail.total + 1;
  const chunks: number[] = [];
  for (let chunk = Math.floor((first - 1) / chunkSize); chunk * chunkSize < last; chunk++) {
    if (chunk * chunkSize + 1 < tailStart) {
      chunks.push(chunk);
    }
  }
  const pages = useQueries({ queries: chunks.map((chunk) => chunkQuery(runId, source, chunk)) });
  return (n: number): LogLine | undefined => {
    if (n >= tailStart) {
      return tail.lines[n - tailStart];
    }
    const page = pages[chunks.indexOf(Math.floor((n - 1) / chunkSize))]?.data;
    return page?.lines[(n - 1) % chunkSize];
  };
}
