import {
  Button,
  NumberInput,
  type NumberInputProps,
  Select,
  SimpleGrid,
  Switch,
  TagsInput,
  TextInput,
} from "@mantine/core";
import { useState } from "react";
import { type Field, valueText } from "./params";

interface ParamsFormProps {
  fields: readonly Field[];
  values: Record<string, unknown>;
  problems: Record<string, string>;
  onChange: (values: Record<string, unknown>) => void;
}

/** A form for whatever parameters a trainer's schema names. */
export function ParamsForm({ fields, values, problems, onChange }: ParamsFormProps) {
  const changed = Object.keys(values).length > 0;
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="md" verticalSpacing="md">
        {fields.map((field) => (
          <ParamInput
            key={field.name}
            field={field}
            value={field.name in values ? values[field.name] : field.default}
            problem={problems[field.name] ?? ""}
            onChange={(value) => onChange({ ...values, [field.name]: value })}
          />
        ))}
      </SimpleGrid>
      {changed && (
        <Button variant="subtle" size="compact-sm" mt="sm" onClick={() => onChange({})}>
          Back to the defaults
        </Button>
      )}
    </>
  );
}

interface ParamInputProps {
  field: Field;
  value: unknown;
  problem: string;
  onChange: (value: unknown) => void;
}

function ParamInput({ field, value, problem, onChange }: ParamInputProps) {
  const common = {
    label: field.title,
    description: field.description || undefined,
    error: problem || undefined,
    required: field.required && field.default === undefined,
    inputWrapperOrder: ["label", "input", "description", "error"] satisfies (
      | "label"
      | "input"
      | "description"
      | "error"
    )[],
  };
  const empty = field.nullable ? null : undefined;
  switch (field.kind) {
    case "choice":
      return (
        <Select
          {...common}
          allowDeselect={false}
          data={field.options.map((option, i) => ({ value: String(i), label: valueText(option) }))}
          value={String(field.options.indexOf(value))}
          onChange={(i) => onChange(field.options[Number(i)])}
        />
      );
    case "switch":
      return (
        <Switch
          label={field.title}
          description={field.description || undefined}
          error={problem || undefined}
          checked={value === true}
          onChange={(e) => onChange(e.currentTarget.checked)}
        />
      );
    case "integer":
    case "number":
      return (
        <ParamNumber
          {...common}
          allowDecimal={field.kind === "number"}
          placeholder={field.nullable ? "none" : undefined}
          value={value}
          onChange={(v) => onChange(v ?? empty)}
        />
      );
    case "texts":
      return (
        <TagsInput
          {...common}
          value={Array.isArray(value) ? value.map(String) : []}
          onChange={onChange}
          clearable
          clearButtonProps={{ "aria-label": `Empty ${field.title}` }}
        />
      );
    case "text":
      return (
        <TextInput
          {...common}
          placeholder={field.nullable ? "none" : undefined}
          value={typeof value === "string" ? value : ""}
          onChange={(e) => onChange(e.currentTarget.value === "" ? (empty ?? "") : e.currentTarget.value)}
        />
      );
    case "json":
      return <JsonInput {...common} value={value} onChange={onChange} />;
  }
}

interface ParamNumberProps extends Omit<NumberInputProps, "value" | "onChange"> {
  value: unknown;
  onChange: (value: number | undefined) => void;
}

/** A number that may be half typed: "2." is kept as it stands until it has become 2.5. */
function ParamNumber({ value, onChange, ...rest }: ParamNumberProps) {
  const [typed, setTyped] = useState<string | number>("");
  const known = typeof value === "number" && !Number.isNaN(value) ? value : "";
  const shown = typed !== "" && Object.is(Number(typed), value) ? typed : known;
  return (
    <NumberInput
      {...rest}
      value={shown}
      onChange={(next) => {
        setTyped(next);
        onChange(next === "" ? undefined : Number(next));
      }}
    />
  );
}

interface JsonInputProps {
  label: string;
  description?: string;
  error?: string;
  required: boolean;
  value: unknown;
  onChange: (value: unknown) => void;
}

/** What no other input fits: the value as JSON, sent once it reads as such. */
function JsonInput({ value, onChange, error, ...rest }: JsonInputProps) {
  const [text, setText] = useState(() => (value === undefined ? "" : JSON.stringify(value)));
  const [broken, setBroken] = useState(false);
  return (
    <TextInput
      {...rest}
      error={broken ? "This is not JSON yet" : error}
      value={text}
      onChange={(e) => {
        const typed = e.currentTarget.value;
        setText(typed);
        if (typed === "") {
          setBroken(false);
          onChange(undefined);
          return;
        }
        try {
          onChange(JSON.parse(typed));
          setBroken(false);
        } catch {
          setBroken(true);
        }
      }}
    />
  );
}
