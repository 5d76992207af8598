import { Button } from "@mantine/core";
import { Link } from "wouter";
import { Empty } from "@/ui/empty";

/** An address that leads nowhere. */
export function NotFound() {
  return (
    <Empty title="There is no such page">
      <Button component={Link} href="/" variant="default" mt="sm">
        To the runs
      </Button>
    </Empty>
  );
}
