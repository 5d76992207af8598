import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";

// The one accent. Shade 7 carries white text at 7:1, shade 3 reads on the dark ground at 6:1.
const accent: MantineColorsTuple = [
  "#eef1fc",
  "#dce1f7",
  "#b8c2ee",
  "#93a3ea",
  "#7187e2",
  "#5a72da",
  "#4a62d2",
  "#3a50b8",
  "#31449c",
  "#273781",
];

// Cool neutrals in place of Mantine's brownish ones.
const dark: MantineColorsTuple = [
  "#d9dce3",
  "#b6bbc6",
  "#959ba9",
  "#6d7482",
  "#3d434f",
  "#2d323c",
  "#22262e",
  "#1a1d23",
  "#14161b",
  "#0f1115",
];

export const theme = createTheme({
  primaryColor: "accent",
  primaryShade: { light: 7, dark: 7 },
  colors: { accent, dark },
  autoContrast: true,
  fontFamily: '"Inter Variable", system-ui, sans-serif',
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
  // Three sizes: small, body, title.
  fontSizes: { xs: "0.75rem", sm: "0.875rem", md: "0.875rem", lg: "1.25rem", xl: "1.25rem" },
  headings: {
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "1.25rem", lineHeight: "1.75rem" },
      h2: { fontSize: "0.875rem", lineHeight: "1.25rem" },
      h3: { fontSize: "0.875rem", lineHeight: "1.25rem" },
    },
  },
  spacing: { xs: "0.25rem", sm: "0.5rem", md: "1rem", lg: "1.5rem", xl: "2rem" },
  defaultRadius: "md",
  cursorType: "pointer",
  components: {
    Button: { defaultProps: { size: "sm" } },
    InputWrapper: { styles: { label: { marginBottom: 4 }, description: { marginTop: 4 }, error: { marginTop: 4 } } },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 300, events: { hover: true, focus: true, touch: true } } },
  },
});

/** The greys that carry text, dark enough for AA in both schemes, and the colours that only states use. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-body": "#f6f7f9",
    "--mantine-color-text": "#1b1f27",
    "--mantine-color-dimmed": "#596170",
    "--mantine-color-placeholder": "#6b7280",
    "--mantine-color-anchor": "var(--mantine-color-accent-7)",
    "--mantine-color-error": "#b3261e",
    "--surface": "#ffffff",
    "--surface-sunken": "#f1f3f6",
    "--line": "#dfe3e9",
    "--line-strong": "#868e9c",
    "--accent-text": "var(--mantine-color-accent-7)",
    "--accent-soft": "var(--mantine-color-accent-0)",
    "--accent-fill": "var(--mantine-color-accent-6)",
    "--danger-text": "#b3261e",
    "--danger-soft": "#fdf0ef",
    "--danger-line": "#f0c4c0",
    "--warn-text": "#8a5300",
    "--warn-soft": "#fdf5e6",
    "--warn-line": "#ecd9b0",
    "--good-text": "#1d6b3c",
  },
  dark: {
    "--mantine-color-body": "#14161b",
    "--mantine-color-text": "#dfe2e8",
    "--mantine-color-dimmed": "#a0a7b4",
    "--mantine-color-placeholder": "#8f96a3",
    "--mantine-color-anchor": "var(--mantine-color-accent-3)",
    "--mantine-color-error": "#ff9d94",
    "--surface": "#1a1d23",
    "--surface-sunken": "#22262e",
    "--line": "#2d323c",
    "--line-strong": "#6d7482",
    "--accent-text": "var(--mantine-color-accent-3)",
    "--accent-soft": "#20273f",
    "--accent-fill": "var(--mantine-color-accent-4)",
    "--danger-text": "#ff9d94",
    "--danger-soft": "#2c1b1c",
    "--danger-line": "#5a2f30",
    "--warn-text": "#e8b866",
    "--warn-soft": "#2a2317",
    "--warn-line": "#54452a",
    "--good-text": "#79c79a",
  },
});
