// Writes spa/src/client/schema.d.ts from openapi/openapi.yaml; with --check it writes nothing and fails when the file
// is stale. The generator is installed on first use, in this folder, since it cannot live beside TypeScript 7.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const tools = dirname(fileURLToPath(import.meta.url));
const root = join(tools, "..", "..");
const cli = join(tools, "node_modules", "openapi-typescript", "bin", "cli.js");

if (!existsSync(cli) || installedVersion() !== wantedVersion()) {
  execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: tools, stdio: "inherit" });
}

const args = [
  join(root, "openapi", "openapi.yaml"),
  "--output",
  join(root, "spa", "src", "client", "schema.d.ts"),
  "--root-types",
  "--root-types-no-schema-prefix",
  ...(process.argv.includes("--check") ? ["--check"] : []),
];
try {
  execFileSync(process.execPath, [cli, ...args], { cwd: root, stdio: "inherit" });
} catch {
  if (process.argv.includes("--check")) {
    console.error("spa/src/client/schema.d.ts is stale: run `make generate` and commit the result");
  }
  process.exit(1);
}

function installedVersion() {
  return JSON.parse(readFileSync(join(dirname(cli), "..", "package.json"), "utf8")).version;
}

function wantedVersion() {
  return JSON.parse(readFileSync(join(tools, "package.json"), "utf8")).dependencies["openapi-typescript"];
}
