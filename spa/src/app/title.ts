import { useEffect } from "react";

/** Names the tab, so that it can be found among others and tells the state without being opened. */
export function useTitle(...parts: (string | false | undefined)[]): void {
  const title = parts.filter(Boolean).join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}
