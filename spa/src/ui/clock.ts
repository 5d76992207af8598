import { useEffect, useState } from "react";

/** The time in seconds since 1970, anew every `everyMs` while `ticking`. */
export function useNow(everyMs: number, ticking = true): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    if (!ticking) {
      return;
    }
    setNow(Date.now() / 1000);
    const timer = setInterval(() => setNow(Date.now() / 1000), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, ticking]);
  return now;
}
