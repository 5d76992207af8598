import { expect, test } from "./harness";

const home = "/admin/training";

// Nothing listens on port 1: what a person sees of a host that cannot be reached.
test.use({
  training: [
    "backends:",
    "  gpu-server: {type: ssh, host: 127.0.0.1, port: 1}",
    "  cluster: {type: slurm, host: 127.0.0.1, port: 1, remote_dir: /scratch/potato}",
  ],
});

for (const [name, label] of [
  ["gpu-server", "gpu-server (ssh to 127.0.0.1)"],
  ["cluster", "cluster (slurm on 127.0.0.1)"],
] as const) {
  test(`the check and a run say why ${name} cannot be reached (H10, §11)`, async ({ page, server }) => {
    await page.goto(server.url + home);
    await page.getByRole("combobox", { name: "Runs on" }).click();
    await page.getByRole("option", { name: label }).click();
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await expect(page.getByText("ssh to 127.0.0.1 failed: Connection refused").first()).toBeVisible({
      timeout: 30_000,
    });

    await page.getByRole("button", { name: "Train", exact: true }).click();
    const row = page.getByRole("row").nth(1);
    await expect(row).toContainText(name);
    await expect(row).toContainText("error", { timeout: 30_000 });
    await row.getByRole("link").first().click();
    const error = page.getByRole("region", { name: "ssh to 127.0.0.1 failed: Connection refused" });
    await expect(error).toContainText("is sshd running there");
    await expect(error).toContainText("ssh_unreachable");
  });
}
