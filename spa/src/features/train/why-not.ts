import type { SchemeSummary, Trainer } from "@/client/schema";

/** What the place to train adds to the form; it belongs to another feature. */
export interface Place {
  backend: string | undefined;
  local: boolean;
  /** Why nothing can be trained there; empty when it can. */
  reason: string;
}

interface Choice {
  trainer: Trainer | undefined;
  schemes: readonly SchemeSummary[];
  place: Place;
}

/** Why the trainer cannot train anything there now, as a sentence; empty when it can. */
export function whyNot({ trainer, schemes, place }: Choice): string {
  if (place.reason !== "") {
    return place.reason;
  }
  if (!trainer) {
    return "This server has no trainers.";
  }
  if (place.local && !trainer.available) {
    const install = trainer.install_hint ? ` To have it: ${trainer.install_hint}` : "";
    return `${trainer.unavailable_reason || `${trainer.name} is not available here`}.${install}`.replace("..", ".");
  }
  if (trainer.local_only && !place.local) {
    return `${trainer.name} trains on this machine only: choose the local backend.`;
  }
  if (schemes.length === 0) {
    return "The study has no annotation schemes.";
  }
  const taken = schemes.filter((s) => s.trainers.includes(trainer.name));
  if (taken.some((s) => s.trainable)) {
    return "";
  }
  if (taken.length === 0) {
    return `${trainer.name} takes none of the study's schemes.`;
  }
  // One scheme speaks for itself; of several each reason says whose it is.
  const reasons = taken.map((s) => (taken.length === 1 ? s.reason : `${s.name}: ${s.reason}`));
  return reasons.join(" · ");
}
