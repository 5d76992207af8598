import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type RenderResult, render } from "@testing-library/react";
import type { ReactNode } from "react";
import { cssVariables, theme } from "@/app/theme";

/** Renders as the app does, with a cache of its own. */
export function renderInApp(ui: ReactNode, client = new QueryClient()): RenderResult {
  return render(
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} env="test">
      <QueryClientProvider client={client}>{ui}</QueryClientProvider>
    </MantineProvider>,
  );
}
