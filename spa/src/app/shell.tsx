import { Route, Switch } from "wouter";
import { Header } from "@/app/header";
import { useLiveRuns } from "@/app/live";
import { NotFound } from "@/app/not-found";
import { RunPage } from "@/app/run-page";
import { useShortcuts } from "@/app/shortcuts";
import { TrainingPage } from "@/app/training-page";
import type { Status } from "@/client/schema";
import { Notice } from "@/ui/notice";
import classes from "./shell.module.css";

/** What every page has around it: the header, the stream of changes, what is read out, the foot. */
export function Shell({ status }: { status: Status }) {
  const live = useLiveRuns();
  useShortcuts();
  return (
    <>
      <Header status={status} connected={live.connected} />
      <main className={classes.main}>
        {status.warnings.map((warning) => (
          <Notice key={warning} tone="warn" title={warning} />
        ))}
        <Switch>
          <Route path="/">
            <TrainingPage status={status} />
          </Route>
          <Route path="/runs/:id">{({ id }) => <RunPage key={id} id={id} study={status.project_name} />}</Route>
          <Route>
            <NotFound />
          </Route>
        </Switch>
      </main>
      <footer className={classes.foot}>
        <span>Potato {status.version}</span>
        <span className={classes.keys}>
          <kbd>/</kbd> search <kbd>t</kbd> train <kbd>g</kbd> <kbd>r</kbd> runs
        </span>
      </footer>
      <div className="visually-hidden" aria-live="polite" role="status" data-testid="announcements">
        {live.announcement}
      </div>
    </>
  );
}
