import type { ReactNode } from "react";
import classes from "@/ui/empty.module.css";

/** An empty list: that it is empty, and the next step. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={classes.empty}>
      <p className={classes.title}>{title}</p>
      {children && <div className={classes.more}>{children}</div>}
    </div>
  );
}
