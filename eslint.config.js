import tseslint from "typescript-eslint";

const CLOCK_AND_CHANCE = [
  { object: "Date", property: "now", message: "Time is passed in: use a Clock." },
  { object: "Math", property: "random", message: "Randomness is passed in: use a Random." },
  { object: "process", property: "env", message: "Settings are read in config.ts only." },
];

const NO_MODULE_BY_NAME = ["getBuiltinModule", "binding", "_linkedBinding"].map((property) => ({
  object: "process",
  property,
  message: "Import the module: the import rules see nothing else.",
}));

export default tseslint.config(
  { ignores: ["dist/**", ".builds/**", "node_modules/**"] },
  ...tseslint.configs.recommended,
  {
    // Rules that need types are in .oxlintrc.json, with the native compiler.
    rules: {
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "@typescript-eslint/consistent-type-imports": "error",
      "no-restricted-properties": ["error", ...CLOCK_AND_CHANCE, ...NO_MODULE_BY_NAME],
      "no-restricted-exports": ["error", { restrictDefaultExports: { direct: true } }],
      "no-console": "error",
      eqeqeq: "error",
    },
  },
  {
    // The programs' own main files, their settings, and everything that is not the product.
    files: [
      "**/main.ts",
      "**/config.ts",
      "test/**",
      "deploy/**",
      "**/*.test.ts",
      "**/contract/**",
      "*.config.*",
      "controller/cli/**",
    ],
    rules: {
      "no-restricted-properties": ["error", ...NO_MODULE_BY_NAME],
      "no-console": "off",
      "no-restricted-exports": "off",
    },
  },
);
