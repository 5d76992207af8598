import { useEffect } from "react";
import { useLocation } from "wouter";

const secondKeyMs = 1000;

/** The page's keys: / searches, t trains, g r goes to the runs. They rest while someone types or a dialog is open. */
export function useShortcuts(): void {
  const [, navigate] = useLocation();
  useEffect(() => {
    let gAt = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isBusy(event.target)) {
        return;
      }
      const afterG = event.timeStamp - gAt < secondKeyMs;
      gAt = 0;
      if (event.key === "/") {
        event.preventDefault();
        focus("search");
      } else if (event.key === "t") {
        event.preventDefault();
        navigate("/");
        focus("train");
      } else if (event.key === "g") {
        gAt = event.timeStamp;
      } else if (event.key === "r" && afterG) {
        event.preventDefault();
        navigate("/");
        focus("runs");
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [navigate]);
}

function isBusy(target: EventTarget | null): boolean {
  const typing =
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
  return typing || document.querySelector('[role="dialog"]') !== null;
}

/** Focuses what carries the name, as soon as it is there: another page may have to come first. */
function focus(name: string, triesLeft = 60): void {
  const element = document.querySelector<HTMLElement>(`[data-shortcut="${name}"]`);
  if (element) {
    element.focus();
    element.scrollIntoView({ block: "nearest" });
  } else if (triesLeft > 0) {
    requestAnimationFrame(() => focus(name, triesLeft - 1));
  }
}
