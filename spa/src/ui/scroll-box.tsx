import type { CSSProperties, ReactNode, Ref, UIEventHandler } from "react";

interface ScrollBoxProps {
  /** What lies inside, for those who come to it by keyboard. */
  label: string;
  className?: string;
  style?: CSSProperties;
  ref?: Ref<HTMLElement>;
  onScroll?: UIEventHandler<HTMLElement>;
  children: ReactNode;
}

/** A part that scrolls inside itself, so that the page need not; the keyboard reaches it. */
export function ScrollBox({ label, children, ...rest }: ScrollBoxProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section aria-label={label} tabIndex={0} {...rest}>
      {children}
    </section>
  );
}
