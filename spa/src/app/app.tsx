import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { useState } from "react";
import { Router } from "wouter";
import { Gate } from "@/app/gate";
import { createQueryClient } from "@/app/query-client";
import { cssVariables, theme } from "@/app/theme";

/** The whole page. */
export function App({ nonce }: { nonce: string }) {
  const [client] = useState(createQueryClient);
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={client}>
        <Router base="/admin/training">
          <Gate />
        </Router>
      </QueryClientProvider>
    </MantineProvider>
  );
}
