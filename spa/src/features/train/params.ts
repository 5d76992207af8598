/** One parameter of a trainer, read from its JSON Schema. */
export interface Field {
  name: string;
  title: string;
  description: string;
  required: boolean;
  default: unknown;
  kind: "choice" | "switch" | "integer" | "number" | "text" | "texts" | "json";
  /** The values of a choice. */
  options: unknown[];
  nullable: boolean;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
}

type Dict = Record<string, unknown>;

/** Reads the fields of a trainer's schema, in the schema's order. */
export function readFields(schema: Dict): Field[] {
  const properties = isDict(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(properties)
    .filter((entry): entry is [string, Dict] => isDict(entry[1]))
    .map(([name, rule]) => readField(name, rule, required.includes(name)));
}

function readField(name: string, rule: Dict, required: boolean): Field {
  const types = (Array.isArray(rule.type) ? rule.type : [rule.type]).filter((t) => typeof t === "string");
  const options = Array.isArray(rule.enum) ? rule.enum : [];
  const field: Field = {
    name,
    title: typeof rule.title === "string" ? rule.title : name,
    description: typeof rule.description === "string" ? rule.description : "",
    required,
    default: rule.default,
    kind: kindOf(types, rule, options),
    options,
    nullable: types.includes("null") || options.includes(null),
  };
  for (const bound of ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] as const) {
    const value = rule[bound];
    if (typeof value === "number") {
      field[bound] = value;
    }
  }
  return field;
}

function kindOf(types: unknown[], rule: Dict, options: unknown[]): Field["kind"] {
  if (options.length > 0) {
    return "choice";
  }
  const real = types.filter((t) => t !== "null");
  if (real.length !== 1) {
    return "json";
  }
  switch (real[0]) {
    case "boolean":
      return "switch";
    case "integer":
      return "integer";
    case "number":
      return "number";
    case "string":
      return "text";
    case "array":
      return isDict(rule.items) && rule.items.type === "string" ? "texts" : "json";
    default:
      return "json";
  }
}

/** What is wrong with a value, in the server's words; empty when nothing is. */
export function problemWith(field: Field, value: unknown): string {
  if (value === undefined) {
    return field.required && field.default === undefined ? `${field.name} is missing` : "";
  }
  if (value === null) {
    return field.nullable ? "" : `${field.name} may not be empty`;
  }
  if (field.kind !== "integer" && field.kind !== "number") {
    return "";
  }
  if (typeof value !== "number" || Number.isNaN(value)) {
    return `${field.name} must be ${field.kind === "integer" ? "a whole number" : "a number"}`;
  }
  if (field.kind === "integer" && !Number.isInteger(value)) {
    return `${field.name} must be a whole number`;
  }
  const bounds: [boolean, string][] = [
    [field.minimum !== undefined && value < field.minimum, `at least ${field.minimum}`],
    [field.exclusiveMinimum !== undefined && value <= field.exclusiveMinimum, `more than ${field.exclusiveMinimum}`],
    [field.maximum !== undefined && value > field.maximum, `at most ${field.maximum}`],
    [field.exclusiveMaximum !== undefined && value >= field.exclusiveMaximum, `less than ${field.exclusiveMaximum}`],
  ];
  const broken = bounds.find(([isBroken]) => isBroken);
  return broken ? `${field.name} must be ${broken[1]}` : "";
}

/** A value as people read it. */
export function valueText(value: unknown): string {
  if (value === undefined) {
    return "";
  }
  return typeof value === "string" ? value : value === null ? "none" : JSON.stringify(value);
}

/** The values that differ from the defaults: the only ones worth sending and worth reading later. */
export function given(fields: readonly Field[], values: Dict): Dict {
  return Object.fromEntries(
    fields
      .map((f) => [f.name, values[f.name], f.default] as const)
      .filter(([, value, standard]) => value !== undefined && JSON.stringify(value) !== JSON.stringify(standard))
      .map(([name, value]) => [name, value]),
  );
}

export function isDict(value: unknown): value is Dict {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
