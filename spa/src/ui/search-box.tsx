import { CloseButton, TextInput } from "@mantine/core";
import { Icon } from "./icons";

interface SearchBoxProps {
  /** What it searches, e.g. `Search runs`; its name to a screen reader. */
  label: string;
  placeholder: string;
  typed: string;
  onType: (typed: string) => void;
  className?: string | undefined;
}

/** A search that `/` leads to and one click clears. */
export function SearchBox({ label, placeholder, typed, onType, className }: SearchBoxProps) {
  return (
    <TextInput
      type="search"
      aria-label={label}
      placeholder={placeholder}
      data-shortcut="search"
      leftSection={<Icon name="search" />}
      rightSection={typed !== "" && <CloseButton aria-label="Clear the search" size="sm" onClick={() => onType("")} />}
      value={typed}
      onChange={(e) => onType(e.currentTarget.value)}
      className={className}
    />
  );
}
