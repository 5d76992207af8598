const whole = new Intl.NumberFormat("en");
const exact = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });

/** 1588 → "1,588". */
export function count(n: number): string {
  return whole.format(n);
}

/** "1 run", "2 runs". */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A score between 0 and 1: two decimals, and never rounded up to a perfect one. */
export function score(value: number): string {
  return value < 1 && value > 0.995 ? ">0.99" : value.toFixed(2);
}

/** Seconds in the two largest units: "0.4 s", "41 s", "3 min 12 s", "2 h 5 min", "3 d 4 h". */
export function duration(seconds: number): string {
  if (seconds < 1) {
    return `${Math.max(0, seconds).toFixed(1)} s`;
  }
  const s = Math.round(seconds);
  const units: [number, string][] = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const first = units.findIndex(([size]) => s >= size);
  const parts: string[] = [];
  let rest = s;
  for (const [size, name] of units.slice(first, first + 2)) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) {
      parts.push(`${n} ${name}`);
    }
  }
  return parts.join(" ");
}

/** Seconds left, rounded so that it does not flicker: "~40 s left", "~3 min left". */
export function timeLeft(seconds: number): string {
  if (seconds < 5) {
    return "a few seconds left";
  }
  if (seconds < 90) {
    return `~${Math.round(seconds / 5) * 5} s left`;
  }
  return seconds < 5400 ? `~${Math.round(seconds / 60)} min left` : `~${(seconds / 3600).toFixed(1)} h left`;
}

/** How long ago a moment was; a clock that runs ahead of the server's reads "just now". */
export function ago(at: number, now: number): string {
  const s = now - at;
  if (s < 10) {
    return "just now";
  }
  if (s < 60) {
    return `${Math.floor(s / 10) * 10} s ago`;
  }
  if (s < 3600) {
    return `${Math.floor(s / 60)} min ago`;
  }
  if (s < 86400) {
    return `${Math.floor(s / 3600)} h ago`;
  }
  const days = Math.floor(s / 86400);
  return days === 1 ? "yesterday" : days < 60 ? `${days} days ago` : `${Math.floor(days / 30)} months ago`;
}

/** A moment (seconds since 1970) in the reader's own time zone. */
export function moment(at: number): string {
  return exact.format(new Date(at * 1000));
}

/** 2411724 → "2.4 MB". */
export function bytes(n: number): string {
  if (n < 1000) {
    return `${n} B`;
  }
  const units = ["kB", "MB", "GB", "TB"];
  let value = n / 1000;
  let unit = 0;
  while (value >= 999.95 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** A text that begins as a sentence does. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
