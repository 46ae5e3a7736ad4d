/** How many times as many random cases as in every run: `npm run soak` sets it. */
export const TIMES = Number(process.env["ODP_TEST_TIMES"] ?? 1);
