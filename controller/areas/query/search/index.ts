export { type Searches, SearchService } from "./service.ts";
