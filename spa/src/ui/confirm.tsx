import { Button, Group, Modal } from "@mantine/core";
import type { ReactNode } from "react";
import { wordsOf } from "@/client/problem";
import { Notice } from "@/ui/notice";

interface ConfirmProps {
  opened: boolean;
  onClose: () => void;
  /** The question, with the consequence in it. */
  title: string;
  children?: ReactNode;
  confirm: string;
  keep: string;
  danger?: boolean;
  busy: boolean;
  error?: unknown;
  onConfirm: () => void;
}

/** Asks before something is done that cannot be undone by a second click. */
export function Confirm(props: ConfirmProps) {
  const { opened, onClose, title, children, confirm, keep, danger = false, busy, error, onConfirm } = props;
  return (
    <Modal.Root opened={opened} onClose={onClose} centered size="md">
      <Modal.Overlay />
      {/* No Modal.Header: it would be a second banner of the page. */}
      <Modal.Content>
        <Modal.Body p="lg">
          <Modal.Title mb="sm" fw={600}>
            {title}
          </Modal.Title>
          {children}
          {error != null && <Notice tone="danger" alert title={wordsOf(error).message} />}
          <Group justify="flex-end" gap="sm" mt="lg">
            <Button variant="default" onClick={onClose} data-autofocus>
              {keep}
            </Button>
            <Button color={danger ? "red.9" : undefined} loading={busy} onClick={onConfirm}>
              {confirm}
            </Button>
          </Group>
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}
