import { defineConfig } from "@playwright/test";

// The built program (`make build`) on a copy of the tutorial's study, in Debian's Chromium.
export default defineConfig({
  testDir: "spa/e2e",
  outputDir: "test-results",
  timeout: 60_000,
  expect: { timeout: 15_000 },
  workers: 1,
  forbidOnly: process.env.CI === "true",
  reporter: [["list"]],
  use: {
    trace: "retain-on-failure",
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
  },
});
