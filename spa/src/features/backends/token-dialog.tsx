import { Button, Group, Modal } from "@mantine/core";
import type { IssuedToken } from "@/client/schema";
import { CopyButton } from "@/ui/copy";
import classes from "./token-dialog.module.css";

interface TokenDialogProps {
  issued: IssuedToken | undefined;
  onClose: () => void;
}

/** A new token, this once, with what to type on the training machine. */
export function TokenDialog({ issued, onClose }: TokenDialogProps) {
  const server = window.location.origin;
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(window.location.hostname);
  return (
    <Modal.Root
      opened={issued !== undefined}
      onClose={onClose}
      centered
      size="lg"
      closeOnClickOutside={false} // the token would be gone
    >
      <Modal.Overlay />
      <Modal.Content>
        <Modal.Body p="lg">
          {issued && (
            <>
              <Modal.Title mb="sm" fw={600}>
                Token for {issued.backend}
              </Modal.Title>
              <p className={classes.text}>It is shown this once. On the training machine:</p>
              <Commands what="commands" text={startCommands(issued, server)} />
              <p className={classes.text}>If potato is not installed there, instead of the last line:</p>
              <Commands what="install command" text={installCommand(issued, server)} />
              {local && (
                <p className={classes.text}>
                  In place of {server} write this server&apos;s address as the training machine reaches it.
                </p>
              )}
              <Group justify="flex-end" mt="lg">
                <Button onClick={onClose} data-autofocus>
                  Done
                </Button>
              </Group>
            </>
          )}
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

function Commands({ text, what }: { text: string; what: string }) {
  return (
    <div className={classes.commands}>
      <div className={classes.box}>
        <pre>{text}</pre>
      </div>
      <CopyButton text={text} what={what} variant="subtle" size="compact-sm" />
    </div>
  );
}

function startCommands(issued: IssuedToken, server: string): string {
  return `export POTATO_TRAINING_TOKEN=${issued.token}\npotato training agent --server ${server} --backend ${issued.backend}`;
}

/** Downloads the agent from this server, checks it and starts it; as `potato training register` prints it. */
export function installCommand(issued: IssuedToken, server: string): string {
  return [
    `u=${server}/api/training/agent/$(uname -s)/$(uname -m)`,
    "curl -fo potato-agent $u",
    "curl -fo potato-agent.sha256 $u.sha256",
    "{ sha256sum -c potato-agent.sha256 || shasum -a 256 -c potato-agent.sha256; }",
    "chmod +x potato-agent",
    `./potato-agent --server ${server} --backend ${issued.backend}`,
  ].join(" && ");
}
