import { Button } from "@mantine/core";
import { useState } from "react";
import { wordsOf } from "@/client/problem";
import { Icon } from "@/ui/icons";
import { type LogSource, readWholeLog } from "./queries";

interface DownloadLogProps {
  runId: string;
  source: LogSource;
  disabled: boolean;
}

/** Saves a whole log as a text file. */
export function DownloadLog({ runId, source, disabled }: DownloadLogProps) {
  const [state, setState] = useState<{ busy: boolean; words: string }>({ busy: false, words: "" });
  const save = async () => {
    setState({ busy: true, words: "" });
    try {
      const blob = await readWholeLog(
        runId,
        source,
        (read, total) => setState({ busy: true, words: `${Math.round((read / total) * 100)} %` }),
        new AbortController().signal,
      );
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${runId}-${source}.txt`;
      link.click();
      URL.revokeObjectURL(link.href);
      setState({ busy: false, words: "" });
    } catch (error) {
      setState({ busy: false, words: wordsOf(error).message });
    }
  };
  return (
    <div>
      {state.words !== "" && <span role="status">{state.words} </span>}
      <Button
        variant="subtle"
        size="compact-sm"
        leftSection={<Icon name="download" />}
        loading={state.busy}
        disabled={disabled}
        onClick={save}
      >
        Download
        <span className="visually-hidden"> {source} as text</span>
      </Button>
    </div>
  );
}
