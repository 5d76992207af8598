import { useEffect, useState } from "react";
import type { Run } from "@/client/schema";
import { duration } from "@/ui/format";
import { isFinal } from "@/ui/run-status";

/** How long a run took, or has been taking: the server's count, carried on by this clock while the run goes on. */
export function Took({ run }: { run: Run }) {
  const going = !isFinal(run.status) && run.duration !== null;
  const [since, setSince] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new figure of the server starts the count afresh
  useEffect(() => {
    setSince(0);
    if (!going) {
      return;
    }
    const start = performance.now();
    const timer = setInterval(() => setSince((performance.now() - start) / 1000), 1000);
    return () => clearInterval(timer);
  }, [going, run.duration]);
  return run.duration === null ? "–" : duration(run.duration + (going ? since : 0));
}
