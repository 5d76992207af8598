import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { precompress } from "./spa/tools/precompress.ts";

const path = (below: string) => fileURLToPath(new URL(below, import.meta.url));
const server = process.env.POTATO_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  root: "spa",
  base: "/admin/training/",
  plugins: [react(), precompress(path("./spa/dist"))],
  resolve: { alias: { "@": path("./spa/src") } },
  build: {
    assetsInlineLimit: 0, // a data: URI would need a hole in the policy
    modulePreload: { polyfill: false }, // it would be an inline script
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800, // one page, loaded once and cached for good
  },
  server: { proxy: { "/admin/training/api": server } },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/test/setup.ts"],
  },
});
