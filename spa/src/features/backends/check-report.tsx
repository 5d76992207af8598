import { CloseButton } from "@mantine/core";
import { wordsOf } from "@/client/problem";
import type { CheckItem, CheckReport, Gpu } from "@/client/schema";
import { count } from "@/ui/format";
import { Icon, type IconName } from "@/ui/icons";
import { ScrollBox } from "@/ui/scroll-box";
import classes from "./check-report.module.css";

interface CheckReportViewProps {
  report: CheckReport | undefined;
  error: unknown;
  onClose: () => void;
}

/** What a check found: the verdict, then each item with its mark and what to do about it, then the GPUs. */
export function CheckReportView({ report, error, onClose }: CheckReportViewProps) {
  const failed = error == null ? null : wordsOf(error);
  const level = failed || !report?.ok ? "fail" : "ok";
  return (
    <section className={classes.report} aria-label="Check">
      <div className={classes.head}>
        <div className={classes.verdict} data-level={level} role="status">
          <Mark level={level} />
          <span>{failed ? `The check did not run: ${failed.message}` : report?.summary}</span>
        </div>
        <CloseButton aria-label="Close the check" size="sm" onClick={onClose} />
      </div>
      {failed?.hint && <p className={classes.hint}>{failed.hint}</p>}
      {report && report.items.length > 0 && (
        <ul className={classes.items}>
          {report.items.map((item) => (
            <li key={`${item.topic} ${item.text}`} data-level={item.level}>
              <Mark level={item.level} />
              <span>
                {item.text}
                {item.hint && <span className={classes.hint}>{item.hint}</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
      {report && report.gpus.length > 0 && <Gpus gpus={report.gpus} />}
    </section>
  );
}

const marks: Record<CheckItem["level"], { icon: IconName; word: string }> = {
  ok: { icon: "check", word: "Fine" },
  warn: { icon: "warn", word: "Warning" },
  fail: { icon: "cross", word: "Problem" },
};

function Mark({ level }: { level: CheckItem["level"] }) {
  return (
    <span className={classes.mark} data-level={level}>
      <Icon name={marks[level].icon} />
      <span className="visually-hidden">{marks[level].word}: </span>
    </span>
  );
}

function Gpus({ gpus }: { gpus: readonly Gpu[] }) {
  return (
    <ScrollBox className={classes.scroll} label="GPUs">
      <table className={classes.gpus}>
        <caption className="visually-hidden">GPUs</caption>
        <thead>
          <tr>
            <th scope="col">GPU</th>
            <th scope="col" className={classes.number}>
              Free
            </th>
            <th scope="col" className={classes.number}>
              Use
            </th>
          </tr>
        </thead>
        <tbody>
          {gpus.map((gpu) => (
            <tr key={gpu.index} data-chosen={gpu.chosen}>
              <td>
                {gpu.index} · {gpu.name}
                {gpu.chosen && <span className={classes.chosen}>a run gets it</span>}
                {!gpu.supported && <span className={classes.hint}>torch there has no kernels for it</span>}
              </td>
              <td className={classes.number}>{memory(gpu)}</td>
              <td className={classes.number}>{gpu.utilization === null ? "–" : `${gpu.utilization} %`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  );
}

function memory(gpu: Gpu): string {
  if (gpu.memory_free_mb === null) {
    return "unknown";
  }
  return gpu.memory_total_mb === null
    ? `${count(gpu.memory_free_mb)} MB`
    : `${count(gpu.memory_free_mb)} of ${count(gpu.memory_total_mb)} MB`;
}
