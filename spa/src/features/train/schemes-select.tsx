import { MultiSelect } from "@mantine/core";
import type { SchemeSummary } from "@/client/schema";
import classes from "./train-panel.module.css";

interface SchemesSelectProps {
  schemes: readonly SchemeSummary[];
  trainer: string;
  selected: string[];
  onChange: (names: string[]) => void;
}

/** Chooses schemes; those that cannot be trained are shown with the reason. */
export function SchemesSelect({ schemes, trainer, selected, onChange }: SchemesSelectProps) {
  const reasonOf = (scheme: SchemeSummary) =>
    scheme.trainers.includes(trainer)
      ? scheme.reason
      : scheme.reason || `${trainer} does not take ${scheme.kind} schemes`;
  return (
    <MultiSelect
      label="Schemes"
      placeholder={selected.length === 0 ? "Choose schemes" : undefined}
      description={selected.length > 1 ? `${selected[0]} is the main one` : undefined}
      inputWrapperOrder={["label", "input", "description"]}
      data={schemes.map((s) => ({
        value: s.name,
        label: s.name,
        disabled: !s.trainable || !s.trainers.includes(trainer),
      }))}
      value={selected}
      onChange={onChange}
      hidePickedOptions
      renderOption={({ option }) => {
        const scheme = schemes.find((s) => s.name === option.value);
        return (
          <span>
            {option.value}
            <span className={classes.reason}>{(option.disabled && scheme && reasonOf(scheme)) || scheme?.kind}</span>
          </span>
        );
      }}
    />
  );
}
