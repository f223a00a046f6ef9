import type { RouteObject } from "react-router";
import { later as lazy } from "../parts/later";

// Every page is a chunk of its own: the first one is small, the editor comes when it is opened.
const Overview = lazy(() => import("./Overview"));
const Graders = lazy(() => import("../graders/GradersPage"));
const NewGrader = lazy(() => import("../graders/NewGrader"));
const GraderPage = lazy(() => import("../graders/GraderPage"));
const GraderEditor = lazy(() => import("../graders/edit/EditorPage"));
const Runs = lazy(() => import("../runs/RunsPage"));
const Cell = lazy(() => import("../runs/cell/CellPage"));
const Run = lazy(() => import("../runs/RunPage"));
const Compare = lazy(() => import("../runs/compare/ComparePage"));
const Labels = lazy(() => import("../labels/LabelsPage"));
const LabelSet = lazy(() => import("../labels/LabelSetPage"));
const LabelQueue = lazy(() => import("../labels/QueuePage"));
const Calibrations = lazy(() => import("../labels/CalibrationsPage"));
const Calibration = lazy(() => import("../labels/CalibrationPage"));
const Data = lazy(() => import("../data/DatasetsPage"));
const Dataset = lazy(() => import("../data/DatasetPage"));
const Jobs = lazy(() => import("../data/JobsPage"));
const Job = lazy(() => import("../data/JobPage"));
const Traces = lazy(() => import("../data/TracesPage"));
const Settings = lazy(() => import("../settings/SettingsPage"));
const Missing = lazy(() => import("./Missing"));

/** What is in a project stands below `/p/PROJECT`; runs and settings do not. */
export const routes: RouteObject[] = [
  { path: "/", element: <Overview /> },
  { path: "/p/:project/graders", element: <Graders /> },
  { path: "/p/:project/graders/new", element: <NewGrader /> },
  { path: "/p/:project/graders/new/:kind", element: <GraderEditor /> },
  { path: "/p/:project/graders/:key", element: <GraderPage /> },
  { path: "/p/:project/graders/:key/edit", element: <GraderEditor /> },
  { path: "/p/:project/labels", element: <Labels /> },
  { path: "/p/:project/labels/set", element: <LabelSet /> },
  { path: "/p/:project/labels/queue", element: <LabelQueue /> },
  { path: "/p/:project/calibrations", element: <Calibrations /> },
  { path: "/p/:project/calibrations/:id", element: <Calibration /> },
  { path: "/p/:project/datasets", element: <Data /> },
  { path: "/p/:project/datasets/:key", element: <Dataset /> },
  { path: "/p/:project/jobs", element: <Jobs /> },
  { path: "/p/:project/jobs/:id", element: <Job /> },
  { path: "/p/:project/traces", element: <Traces /> },
  { path: "/runs", element: <Runs /> },
  { path: "/runs/:run/cell", element: <Cell /> },
  { path: "/runs/:run", element: <Run /> },
  { path: "/compare", element: <Compare /> },
  { path: "/settings", element: <Settings /> },
  { path: "*", element: <Missing /> },
];
