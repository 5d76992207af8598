import { type ReactNode, useId } from "react";
import classes from "@/ui/panel.module.css";

interface PanelProps {
  title: string;
  /** What stands at the right of the title. */
  aside?: ReactNode;
  children: ReactNode;
  /** A table that brings its own edges. */
  flush?: boolean;
  /** A name for shortcuts to go to. */
  shortcut?: string;
}

/** A named part of a page. */
export function Panel({ title, aside, children, flush = false, shortcut }: PanelProps) {
  const id = useId();
  return (
    <section
      className={classes.panel}
      aria-labelledby={id}
      data-shortcut={shortcut}
      tabIndex={shortcut === undefined ? undefined : -1}
    >
      <div className={classes.head}>
        <h2 id={id} className={classes.title}>
          {title}
        </h2>
        {aside}
      </div>
      <div className={flush ? classes.flush : classes.body}>{children}</div>
    </section>
  );
}
