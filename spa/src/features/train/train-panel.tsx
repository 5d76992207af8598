import { Button, Collapse, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { RunRequest, RunStarted, SchemeSummary, Trainer } from "@/client/schema";
import { Icon } from "@/ui/icons";
import { Loaded } from "@/ui/loaded";
import { Notice } from "@/ui/notice";
import { Panel } from "@/ui/panel";
import { Labelled } from "./labelled-line";
import { ParamsForm } from "./params-form";
import { schemesQuery, trainersQuery } from "./queries";
import { SchemesSelect } from "./schemes-select";
import { TrainOutcome } from "./train-outcome";
import classes from "./train-panel.module.css";
import { useTrainForm } from "./use-train-form";
import type { Place } from "./why-not";

interface TrainPanelProps {
  place: Place;
  /** The "Runs on" menu with its Check, for the trainer chosen. */
  runsOn: (trainer: string) => ReactNode;
  onTrain: (request: RunRequest) => Promise<RunStarted>;
}

/** The form that starts a run. */
export function TrainPanel(props: TrainPanelProps) {
  const trainers = useQuery(trainersQuery);
  const schemes = useQuery(schemesQuery);
  const both = {
    data: trainers.data && schemes.data && { trainers: trainers.data, schemes: schemes.data },
    error: trainers.error ?? schemes.error,
    isFetching: trainers.isFetching || schemes.isFetching,
    refetch: () => Promise.all([trainers.refetch(), schemes.refetch()]),
  };
  return (
    <Panel title="Train">
      <Loaded query={both} what="the trainers and schemes" height={160}>
        {(data) => <Form {...props} {...data} />}
      </Loaded>
    </Panel>
  );
}

interface FormProps extends TrainPanelProps {
  trainers: Trainer[];
  schemes: SchemeSummary[];
}

function Form({ trainers, schemes, place, runsOn, onTrain }: FormProps) {
  const form = useTrainForm({ trainers, schemes, place, onTrain });
  const trainerName = form.trainer?.name ?? "";
  return (
    <form
      className={classes.form}
      onSubmit={(e) => {
        e.preventDefault();
        void form.train();
      }}
    >
      <div className={classes.row}>
        <Select
          label="Trainer"
          description={form.trainer?.description}
          inputWrapperOrder={["label", "input", "description"]}
          data={trainers.map((t) => ({ value: t.name, label: t.name }))}
          value={trainerName}
          allowDeselect={false}
          data-shortcut="train"
          onChange={(name) => form.chooseTrainer(name ?? "")}
          renderOption={({ option }) => <TrainerOption trainer={trainers.find((t) => t.name === option.value)} />}
        />
        <SchemesSelect schemes={schemes} trainer={trainerName} selected={form.selected} onChange={form.chooseSchemes} />
        {runsOn(trainerName)}
      </div>
      {form.reason === "" ? <Foot form={form} schemes={schemes} /> : <Notice tone="warn" title={form.reason} />}
      <Collapse expanded={form.open} id="train-params" className={form.open ? undefined : classes.folded}>
        <div className={classes.params}>
          <ParamsForm
            key={trainerName}
            fields={form.fields}
            values={form.params}
            problems={form.problems}
            onChange={form.setParams}
          />
        </div>
      </Collapse>
      <TrainOutcome started={form.started} refused={form.refused} />
    </form>
  );
}

interface FootProps {
  form: ReturnType<typeof useTrainForm>;
  schemes: readonly SchemeSummary[];
}

/** What there is to learn from, and the button. */
function Foot({ form, schemes }: FootProps) {
  return (
    <div className={classes.foot}>
      <div className={classes.labelled}>
        {form.selected.map((name) => (
          <Labelled key={name} scheme={schemes.find((s) => s.name === name)} named={form.selected.length > 1} />
        ))}
        {form.selected.length === 0 && <span>Choose at least one scheme.</span>}
      </div>
      {form.fields.length > 0 && (
        <Button
          variant="subtle"
          aria-expanded={form.open}
          aria-controls="train-params"
          leftSection={<Icon name={form.open ? "up" : "down"} />}
          onClick={form.toggleParams}
        >
          Parameters{form.nChanged > 0 && ` (${form.nChanged} changed)`}
        </Button>
      )}
      <Button type="submit" loading={form.busy} disabled={!form.ready} className={classes.train}>
        Train
      </Button>
    </div>
  );
}

function TrainerOption({ trainer }: { trainer: Trainer | undefined }) {
  return (
    <span>
      {trainer?.name}
      {trainer && !trainer.available && <span className={classes.reason}>{trainer.unavailable_reason}</span>}
    </span>
  );
}
