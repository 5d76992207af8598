import { useNow } from "@/ui/clock";
import { ago, moment } from "@/ui/format";

/** A moment as people say it, the exact one on hover. */
export function TimeAgo({ at }: { at: number }) {
  const now = useNow(10_000);
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={moment(at)}>
      {ago(at, now)}
    </time>
  );
}
