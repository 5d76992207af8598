import { type ReactNode, useState } from "react";
import { ScrollBox } from "@/ui/scroll-box";
import classes from "@/ui/table-behind.module.css";

interface TableBehindProps {
  /** What the figures are of, where a page has several. */
  of?: string;
  children: ReactNode;
}

/** The figures behind a chart, for those who read them better or cannot see it. */
export function TableBehind({ of, children }: TableBehindProps) {
  const [open, setOpen] = useState(false);
  return (
    <details className={classes.behind} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        Show as a table<span className="visually-hidden"> {of}</span>
      </summary>
      <ScrollBox className={classes.scroll} label={`Figures${of ? ` of ${of}` : ""}`}>
        {open && children}
      </ScrollBox>
    </details>
  );
}
