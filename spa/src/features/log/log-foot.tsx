import { Button } from "@mantine/core";
import { count } from "@/ui/format";
import { Icon } from "@/ui/icons";
import classes from "./log-tab.module.css";

/** The line below a list of lines: how many, and what can be done with them. */
export function LogFoot({
  total,
  unit,
  action,
}: {
  total: number;
  unit: string;
  action?: { label: string; run: () => void };
}) {
  return (
    <div className={classes.foot}>
      <span>
        {count(total)} {unit}
      </span>
      {action && (
        <Button variant="default" size="compact-sm" leftSection={<Icon name="down" />} onClick={action.run}>
          {action.label}
        </Button>
      )}
    </div>
  );
}
