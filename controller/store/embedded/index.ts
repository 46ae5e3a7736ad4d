export { EmbeddedEngine, openEmbeddedEngine } from "./engine.ts";
export { checkStore } from "./check.ts";
