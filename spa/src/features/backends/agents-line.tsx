import { Button } from "@mantine/core";
import { useState } from "react";
import type { Backend } from "@/client/schema";
import { Confirm } from "@/ui/confirm";
import { TimeAgo } from "@/ui/time-ago";
import classes from "./agents-line.module.css";
import { useRegister } from "./queries";
import { TokenDialog } from "./token-dialog";

type AgentBackend = Backend & { agent: NonNullable<Backend["agent"]> };

export function isAgentBackend(backend: Backend | undefined): backend is AgentBackend {
  return backend?.agent !== undefined;
}

/** Who trains for an agent backend, when that was last heard of, and the way to a token. */
export function AgentsLine({ backend }: { backend: AgentBackend }) {
  const register = useRegister();
  const [asking, setAsking] = useState(false);
  const registered = backend.agent.registered;
  const issue = () => register.mutate(backend.name, { onSuccess: () => setAsking(false) });
  return (
    <div className={classes.line}>
      <span>
        <AgentsSeen agent={backend.agent} />
      </span>
      <Button
        variant="subtle"
        size="compact-sm"
        loading={register.isPending && !registered}
        onClick={() => {
          register.reset();
          if (registered) {
            setAsking(true);
          } else {
            issue();
          }
        }}
      >
        {registered ? "Register again" : "Register"}
      </Button>
      <Confirm
        opened={asking}
        onClose={() => setAsking(false)}
        title={`Replace the token of ${backend.name}?`}
        confirm="Replace it"
        keep="Keep it"
        danger
        busy={register.isPending}
        error={register.error}
        onConfirm={issue}
      >
        Agents with the present token are refused at once, also in the midst of a run, until they are started with the
        new one.
      </Confirm>
      {!asking && register.error !== null && <span className={classes.failed}>No token was issued.</span>}
      <TokenDialog issued={register.data} onClose={() => register.reset()} />
    </div>
  );
}

/** When an agent was last heard of, in few words: the menu has them too. */
export function AgentsSeen({ agent }: { agent: AgentBackend["agent"] }) {
  if (!agent.registered) {
    return <>No token issued yet</>;
  }
  if (agent.last_seen === null) {
    return <>No agent has used the token yet</>;
  }
  const hosts = [...new Set(agent.agents.map((a) => a.host))];
  return (
    <>
      Agent {hosts[0] && `on ${hosts[0]} `}
      {hosts.length > 1 && `and ${hosts.length - 1} more `}
      last seen <TimeAgo at={agent.last_seen} />
    </>
  );
}
