import { ActionIcon, Tooltip, useMantineColorScheme } from "@mantine/core";
import { Link } from "wouter";
import type { Status } from "@/client/schema";
import { useSignOut } from "@/features/session/queries";
import { counted } from "@/ui/format";
import { Icon } from "@/ui/icons";
import classes from "./shell.module.css";

interface HeaderProps {
  status: Status;
  connected: boolean;
}

/** The study, what the server is doing, the theme. */
export function Header({ status, connected }: HeaderProps) {
  return (
    <header className={classes.header}>
      <div className={classes.bar}>
        <Link href="/" className={classes.study} title={status.project_name}>
          <Mark />
          <span>{status.project_name || "Training"}</span>
        </Link>
        <div className={classes.queue}>
          {connected ? (
            <span>{queueState(status)}</span>
          ) : (
            <span className={classes.offline} role="status">
              <Icon name="warn" /> Not connected, trying again
            </span>
          )}
        </div>
        <div className={classes.tools}>
          <ThemeToggle />
          <SignOut />
        </div>
      </div>
    </header>
  );
}

/** "Queue: empty", "1 run under way", "1 run under way, 2 waiting". */
export function queueState(status: Pick<Status, "running" | "queued">): string {
  const { running, queued } = status;
  if (running.length + queued.length === 0) {
    return "Queue: empty";
  }
  const parts = [
    running.length > 0 && `${counted(running.length, "run")} under way`,
    queued.length > 0 && `${queued.length} waiting`,
  ];
  return parts.filter(Boolean).join(", ");
}

const order = ["auto", "light", "dark"] as const;
const themes = {
  auto: { icon: "auto", word: "Theme: as the system" },
  light: { icon: "sun", word: "Theme: light" },
  dark: { icon: "moon", word: "Theme: dark" },
} as const;

function ThemeToggle() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { icon, word } = themes[colorScheme];
  const next = order[(order.indexOf(colorScheme) + 1) % order.length] ?? "auto";
  return (
    <Tooltip label={word}>
      <ActionIcon variant="subtle" color="gray" size="lg" aria-label={word} onClick={() => setColorScheme(next)}>
        <Icon name={icon} />
      </ActionIcon>
    </Tooltip>
  );
}

function SignOut() {
  const signOut = useSignOut();
  return (
    <Tooltip label="Sign out">
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label="Sign out"
        loading={signOut.isPending}
        onClick={() => signOut.mutate()}
      >
        <Icon name="leave" />
      </ActionIcon>
    </Tooltip>
  );
}

function Mark() {
  return (
    <svg aria-hidden="true" width="24" height="24" viewBox="0 0 32 32">
      <rect width="32" height="32" rx="8" fill="var(--mantine-color-accent-7)" />
      <path
        d="M7 22 L13 15 L18 18.5 L25 9"
        fill="none"
        stroke="#fff"
        strokeWidth="3"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
