import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const shrinks = /\.(js|css|svg|json)$/;

/** Lays a .br and a .gz beside each file that shrinks, so that the server compresses nothing while it serves. */
export function precompress(folder: string): Plugin {
  return {
    name: "precompress",
    apply: "build",
    closeBundle() {
      for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
        const file = join(folder, name);
        if (!shrinks.test(name) || !statSync(file).isFile()) {
          continue;
        }
        const plain = readFileSync(file);
        const brotli = brotliCompressSync(plain, {
          params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length },
        });
        const gzip = gzipSync(plain, { level: 9 });
        if (brotli.length < plain.length) {
          writeFileSync(`${file}.br`, brotli);
        }
        if (gzip.length < plain.length) {
          writeFileSync(`${file}.gz`, gzip);
        }
      }
    },
  };
}
