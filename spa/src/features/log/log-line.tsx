import type { LogLine } from "@/client/schema";
import classes from "./log-tab.module.css";

export const lineHeight = 20;

interface LineProps {
  n: number;
  /** Absent while it is being read. */
  line: LogLine | undefined;
  marked: boolean;
  href: string;
  onOpen: () => void;
}

const time = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** One line: its number, which is a link to it, its time where the file has times, and the text. */
export function Line({ n, line, marked, href, onOpen }: LineProps) {
  return (
    <div className={classes.line} data-level={line?.level} data-marked={marked}>
      <a
        className={classes.n}
        href={href}
        aria-label={`Line ${n}`}
        onClick={(e) => {
          // A plain click stays on the page; with a key held the browser does as it always does.
          if (!e.metaKey && !e.ctrlKey && !e.shiftKey) {
            e.preventDefault();
            onOpen();
          }
        }}
      >
        {n}
      </a>
      {line && line.t > 0 && <time className={classes.t}>{time.format(new Date(line.t * 1000))}</time>}
      {line && isLoud(line.level) && <span className={classes.level}>{line.level}</span>}
      <span className={classes.text}>{line ? line.text : "…"}</span>
    </div>
  );
}

function isLoud(level: string): boolean {
  return level === "warning" || level === "error";
}
