import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { wordsOf } from "@/client/problem";
import type { Artifact } from "@/client/schema";
import { CopyButton } from "@/ui/copy";
import { Empty } from "@/ui/empty";
import { bytes } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { Loaded } from "@/ui/loaded";
import { Notice } from "@/ui/notice";
import { Panel } from "@/ui/panel";
import classes from "./files-tab.module.css";
import { artifactLink, artifactsQuery, useCopyAgain } from "./queries";

interface FilesTabProps {
  runId: string;
  final: boolean;
  /** Where the files lie that did not come to this server. */
  uri: string;
  /** How far the copy of a finished run's files is; empty when none is under way. */
  step: string;
  /** Whether the server can go and get them. */
  canCopy: boolean;
}

/** The files a run left: how big, their checksum, where they lie. */
export function FilesTab({ runId, final, uri, step, canCopy }: FilesTabProps) {
  const query = useQuery(artifactsQuery(runId, final, step));
  return (
    <Panel title="Files" flush>
      <Loaded query={query} what="the files" height={240}>
        {(files) =>
          files.length === 0 ? (
            <Empty title="There are no files">
              {final ? "The run left none, or they were removed since." : "They appear when the run has trained."}
            </Empty>
          ) : (
            <>
              {files.some((f) => f.where === "host") && (
                <div className={classes.notice}>
                  <Elsewhere runId={runId} uri={uri} step={step} canCopy={canCopy} />
                </div>
              )}
              <Files runId={runId} files={files} />
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Elsewhere({ runId, uri, step, canCopy }: Omit<FilesTabProps, "final">) {
  const copy = useCopyAgain(runId);
  const again = (
    <Button variant="default" loading={copy.isPending} disabled={step !== ""} onClick={() => copy.mutate()}>
      Copy again
    </Button>
  );
  return (
    <Notice title="Some files are on the machine that trained" action={canCopy && again}>
      {step || (uri && <>They lie in {uri}</>)}
      {copy.error && <div role="alert">{wordsOf(copy.error).message}</div>}
    </Notice>
  );
}

function Files({ runId, files }: { runId: string; files: readonly Artifact[] }) {
  return (
    <div className={classes.scroll}>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">File</th>
            <th scope="col" className={classes.number}>
              Size
            </th>
            <th scope="col">SHA-256</th>
            <th scope="col">Where</th>
            <th scope="col">
              <span className="visually-hidden">Download</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {files.map((file) => (
            <tr key={file.path}>
              <th scope="row">{file.path}</th>
              <td className={classes.number} title={`${file.bytes} bytes`}>
                {bytes(file.bytes)}
              </td>
              <td className={classes.sum}>
                {file.sha256 ? (
                  <>
                    <code title={file.sha256}>{file.sha256.slice(0, 12)}…</code>
                    <CopyButton
                      text={file.sha256}
                      what={`checksum of ${file.path}`}
                      variant="subtle"
                      size="compact-sm"
                    />
                  </>
                ) : (
                  "–"
                )}
              </td>
              <td>{file.where === "server" ? "this server" : "the training machine"}</td>
              <td className={classes.number}>
                {file.where === "server" && (
                  <Button
                    component="a"
                    href={artifactLink(runId, file.path)}
                    download
                    variant="subtle"
                    size="compact-sm"
                    leftSection={<Icon name="download" />}
                  >
                    Download<span className="visually-hidden"> {file.path}</span>
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
