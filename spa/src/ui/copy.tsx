import { Button, type ButtonProps } from "@mantine/core";
import { useEffect, useState } from "react";
import { Icon } from "@/ui/icons";

/** Puts text on the clipboard; over plain HTTP browsers offer only the old way. */
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.setAttribute("readonly", "");
  area.style.position = "fixed";
  area.style.opacity = "0";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

interface CopyButtonProps extends Pick<ButtonProps, "variant" | "size"> {
  text: string | (() => string);
  /** What it copies, for those who hear the button: "run id". */
  what: string;
  label?: string;
}

/** Copies a text and says so for a moment. */
export function CopyButton({ text, what, label = "Copy", variant = "default", size = "sm" }: CopyButtonProps) {
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") {
      return;
    }
    const timer = setTimeout(() => setState("idle"), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  return (
    <Button
      variant={variant}
      size={size}
      leftSection={<Icon name={state === "copied" ? "check" : "copy"} />}
      onClick={async () => {
        const done = await copyText(typeof text === "string" ? text : text());
        setState(done ? "copied" : "failed");
      }}
    >
      <span aria-live="polite">
        {state === "idle" ? label : state === "copied" ? "Copied" : "Could not copy"}
        <span className="visually-hidden"> {what}</span>
      </span>
    </Button>
  );
}
