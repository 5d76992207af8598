import { Button, Select } from "@mantine/core";
import type { Backend } from "@/client/schema";
import { AgentsLine, AgentsSeen, isAgentBackend } from "./agents-line";
import { CheckReportView } from "./check-report";
import { useCheck } from "./queries";
import classes from "./runs-on.module.css";

interface RunsOnProps {
  backends: readonly Backend[];
  value: string | undefined;
  onChange: (name: string) => void;
  trainer: string;
}

/** The "Runs on" menu, and beside it the check of the place chosen. */
export function RunsOn({ backends, value, onChange, trainer }: RunsOnProps) {
  const check = useCheck();
  const chosen = backends.find((b) => b.name === value);
  return (
    <div className={classes.place}>
      <div className={classes.line}>
        <Select
          label="Runs on"
          className={classes.menu}
          data={backends.map((b) => ({ value: b.name, label: b.label, disabled: !b.available }))}
          value={value ?? null}
          allowDeselect={false}
          onChange={(name) => {
            check.reset();
            onChange(name ?? "");
          }}
          renderOption={({ option }) => <BackendOption backend={backends.find((b) => b.name === option.value)} />}
        />
        <Button
          variant="default"
          loading={check.isPending}
          disabled={!chosen}
          onClick={() => chosen && check.mutate({ backend: chosen.name, trainer })}
        >
          Check
        </Button>
      </div>
      {chosen?.description && <div className={classes.small}>{chosen.description}</div>}
      {isAgentBackend(chosen) && <AgentsLine key={chosen.name} backend={chosen} />}
      {(check.data || check.error) && (
        <CheckReportView report={check.data} error={check.error} onClose={() => check.reset()} />
      )}
    </div>
  );
}

function BackendOption({ backend }: { backend: Backend | undefined }) {
  if (!backend) {
    return null;
  }
  const more = backend.available ? backend.description : backend.reason;
  return (
    <span>
      {backend.label}
      {backend.default && <span className={classes.default}>default</span>}
      {more && <span className={classes.more}>{more}</span>}
      {isAgentBackend(backend) && backend.available && (
        <span className={classes.more}>
          <AgentsSeen agent={backend.agent} />
        </span>
      )}
    </span>
  );
}
