import type { ReactNode } from "react";

const shapes = {
  check: <path d="M3.5 8.5l3 3 6-7" />,
  cross: <path d="M4 4l8 8M12 4l-8 8" />,
  warn: <path d="M8 2.5l6 11H2zM8 6.5v3.5M8 12v.01" />,
  info: <path d="M8 7.5v4M8 4.75v.01M8 1.75a6.25 6.25 0 1 0 0 12.5 6.25 6.25 0 0 0 0-12.5" />,
  copy: <path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3" />,
  download: <path d="M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11" />,
  search: <path d="M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5l3.5 3.5" />,
  back: <path d="M13 8H3M7 4L3 8l4 4" />,
  down: <path d="M4 6l4 4 4-4" />,
  up: <path d="M4 10l4-4 4 4" />,
  sort: <path d="M5 6.5L8 3.5l3 3M5 9.5l3 3 3-3" />,
  retry: <path d="M13.5 8A5.5 5.5 0 1 1 11.5 3.8M11.5 1.5v2.5H9" />,
  sun: (
    <path d="M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1" />
  ),
  moon: <path d="M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z" />,
  auto: (
    <>
      <path d="M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z" />
      <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
    </>
  ),
  star: <path d="M8 2l1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5z" fill="currentColor" />,
  leave: <path d="M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6" />,
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof shapes;

/** A small drawing beside a word; it says nothing that the word does not. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      aria-hidden="true"
      focusable="false"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      {shapes[name]}
    </svg>
  );
}
