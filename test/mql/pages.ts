/** The pages about MQL itself, in the order in which they are read. */
export const MQL_SERIES = ["mql", "mql-classes", "mql-select", "mql-values", "mql-relations", "mql-changes"].map(
  (name) => `deploy/docs/${name}.md`,
);
