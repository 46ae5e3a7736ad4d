/**
 * Flags of Node with which an agent runs. Without them Node lets new objects take up to 48 MB before it collects them,
 * and an agent that has worked keeps that memory while it is at rest. `npm run bench -- agent` measures it.
 */
export const AGENT_NODE_FLAGS: readonly string[] = ["--max-semi-space-size=1"];
