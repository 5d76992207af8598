/** The address of a run's page, with a tab and what the tab is narrowed to. */
export function runLink(id: string, params: Record<string, string> = {}): string {
  const query = new URLSearchParams(params).toString();
  return query === "" ? `/runs/${id}` : `/runs/${id}?${query}`;
}
