import { Progress } from "@mantine/core";
import type { Run } from "@/client/schema";
import { count, timeLeft } from "@/ui/format";
import classes from "./run-progress.module.css";

/** What a run is doing right now: the step in words, how far it is, and the time left where that is known. */
export function RunProgress({ run }: { run: Run }) {
  const progress = run.progress;
  const known = progress !== null && progress.total > 0;
  const percent = known ? Math.min(100, (progress.current / progress.total) * 100) : 0;
  const left = progress?.eta_s == null ? "" : timeLeft(progress.eta_s);
  const step = run.cancel_requested ? "stopping the worker" : stepWords(run);
  return (
    <div className={classes.progress}>
      <div className={classes.words}>
        <span className={classes.step}>{step}</span>
        <span className={classes.left}>{run.cancel_requested ? "" : left}</span>
      </div>
      <Progress.Root size={8} radius={4}>
        <Progress.Section
          value={known ? percent : 100}
          aria-label={`Progress of ${run.run_id}`}
          aria-valuetext={known ? `${Math.round(percent)} % of ${progress.phase}` : step}
          className={known ? classes.known : classes.unknown}
        />
      </Progress.Root>
    </div>
  );
}

/** "fitting, 3 of 5"; the count only where the step's own words have none. */
function stepWords(run: Run): string {
  const step = run.step || run.message || run.status;
  const progress = run.progress;
  return progress !== null && progress.total > 1 && !/\d/.test(step)
    ? `${step}, ${count(Math.round(progress.current))} of ${count(Math.round(progress.total))}`
    : step;
}
