import type { ReactNode } from "react";
import { Icon, type IconName } from "@/ui/icons";
import classes from "@/ui/notice.module.css";

type Tone = "plain" | "warn" | "danger" | "good";

const icons: Record<Tone, IconName> = { plain: "info", warn: "warn", danger: "cross", good: "check" };

interface NoticeProps {
  tone?: Tone;
  title: ReactNode;
  children?: ReactNode;
  action?: ReactNode;
  /** Read out when it appears. */
  alert?: boolean;
}

/** A sentence that stands out: what happened, below it what to do, at the right the means to do it. */
export function Notice({ tone = "plain", title, children, action, alert = false }: NoticeProps) {
  return (
    <div className={classes.notice} data-tone={tone} role={alert ? "alert" : "note"}>
      <span className={classes.icon}>
        <Icon name={icons[tone]} />
      </span>
      <div className={classes.text}>
        <div className={classes.title}>{title}</div>
        {children && <div className={classes.more}>{children}</div>}
      </div>
      {action && <div className={classes.action}>{action}</div>}
    </div>
  );
}
