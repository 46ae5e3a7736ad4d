export { EmbeddedEngine, openEmbeddedEngine } from "./engine.ts";
