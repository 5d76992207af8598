import type { SchemeSummary } from "@/client/schema";
import { labelledSentence } from "./labelled";
import classes from "./train-panel.module.css";

interface LabelledProps {
  scheme: SchemeSummary | undefined;
  /** Whose labels they are, where several schemes are trained. */
  named: boolean;
}

/** What labels a scheme has, under the form. */
export function Labelled({ scheme, named }: LabelledProps) {
  if (!scheme) {
    return null;
  }
  return (
    <span
      title={
        scheme.agreement === null
          ? undefined
          : "α is Krippendorff's alpha over the items that two annotators or more answered"
      }
    >
      {named && <span className={classes.name}>{scheme.name}: </span>}
      {labelledSentence(scheme)}
    </span>
  );
}
