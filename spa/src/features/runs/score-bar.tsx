import { count, score } from "@/ui/format";
import { Icon } from "@/ui/icons";
import type { HeldOut } from "./held-out";
import classes from "./score-bar.module.css";

interface ScoreBarProps {
  held: HeldOut;
  best: boolean;
}

/** A held-out score with a small bar, and how many items it stands on. */
export function ScoreBar({ held, best }: ScoreBarProps) {
  const on = `on ${count(held.n)} ${held.split === "val" ? "validation items" : "items"}`;
  return (
    <div className={classes.score}>
      <span className={classes.number}>
        {best && (
          <span className={classes.best} title="Best of its scheme among the runs listed">
            <Icon name="star" size={12} />
            <span className="visually-hidden">Best: </span>
          </span>
        )}
        {score(held.accuracy)}
      </span>
      <span className={classes.track} aria-hidden="true">
        <span className={classes.bar} data-best={best} style={{ width: `${held.accuracy * 100}%` }} />
      </span>
      <span className={classes.on}>{on}</span>
    </div>
  );
}
