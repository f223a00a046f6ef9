import "../src/app/theme.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { createRoot } from "react-dom/client";
import { MemoryRouter } from "react-router";
import { Problem } from "../src/api/problem";
import { Button, ButtonLink, IconButton } from "../src/parts/Button";
import { EstimateBar, Histogram, Trend } from "../src/parts/Chart";
import { Choice, Pick } from "../src/parts/Choice";
import { Command } from "../src/parts/Command";
import { Confirm, FormDialog } from "../src/parts/Dialog";
import { DiffView } from "../src/parts/DiffView";
import { Disclosure } from "../src/parts/Disclosure";
import { Drop } from "../src/parts/Drop";
import { Empty } from "../src/parts/Empty";
import { EndBar, EndCounts } from "../src/parts/Ends";
import { Faults } from "../src/parts/Field";
import { Figure, Figures } from "../src/parts/Figures";
import { Grid } from "../src/parts/Grid";
import { Menu } from "../src/parts/Menu";
import { Flag, Outcome } from "../src/parts/Outcome";
import { Badge, Named, Notice, Page, Stack } from "../src/parts/Page";
import { Boundary, Panel, ROOT } from "../src/parts/Panel";
import { ProblemBox } from "../src/parts/ProblemBox";
import { Progress } from "../src/parts/Progress";
import { Search } from "../src/parts/Search";
import { Segments } from "../src/parts/Segments";
import { Below, Table } from "../src/parts/Table";
import { PageTabs, Tabs } from "../src/parts/Tabs";
import { TextBlock } from "../src/parts/TextBlock";
import { TextField } from "../src/parts/TextField";
import { Toasts, toast } from "../src/parts/toast";
import { When } from "../src/parts/When";

const ENDS = { passed: 21, failed: 13, errors: 2, skipped: 1, scored: 3 };
const LONG = "a-name-without-any-blank-that-is-longer-than-a-telephone-is-wide-".repeat(3);
const PROBLEM = new Problem(422, "The dataset is wrong", "Two rows cannot be stored.", [
  { field: "line 7", message: "has no answer", fix: "name it with --map" },
  { field: "line 9", message: "is not JSON", fix: "" },
]);
const FAULTS = [{ field: "broken", message: "is taken", fix: "choose another key" }];
const BARS = [3, 9, 14, 8, 2, 0, 1, 0, 5, 30].map((count, place) => ({
  low: place / 10,
  high: (place + 1) / 10,
  count,
}));
const POINTS = [0.4, 0.52, 0.5, 0.66, 0.71].map((mean) => ({
  mean,
  low: mean - 0.1,
  high: mean + 0.1,
}));
const WORDS = ["correct", "grounded", "polite", "short"];
const nothing = () => undefined;

function Shown({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Panel title={title}>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-4">{children}</div>
    </Panel>
  );
}

const inARow = "flex flex-wrap items-center gap-2";

function Gallery() {
  const [tab, setTab] = useState("a");
  const [word, setWord] = useState("");
  const [at, setAt] = useState<number | null>(1);
  const [open, setOpen] = useState("");
  return (
    <Page title="Parts of the page" facts={<span>each in its states</span>}>
      <Stack>
        <Shown title="Buttons">
          <div className={inARow}>
            <Button tone="primary">Primary</Button>
            <Button>Plain</Button>
            <Button tone="quiet">Quiet</Button>
            <Button tone="danger">Danger</Button>
            <Button icon="plus">With a sign</Button>
            <Button isDisabled>Disabled</Button>
            <Button tone="quiet" isDisabled>
              Quiet, disabled
            </Button>
            <ButtonLink to="/">A link</ButtonLink>
            <IconButton icon="close" label="Close" />
            <Menu
              label="More"
              offers={[{ name: "Rename" }, { name: "Delete", isDangerous: true }]}
            />
            <Button onPress={() => toast("Version 3 was saved.")}>Say something</Button>
          </div>
          <Segments
            label="Sorts"
            options={[
              ["a", "pressed"],
              ["b", "not pressed"],
            ]}
            isOn={(key) => key === "a"}
            press={nothing}
          />
        </Shown>
        <Shown title="Outcomes">
          <div className={inARow}>
            {(["pass", "fail", "error", "skipped", "scored"] as const).map((state) => (
              <Outcome key={state} state={state} text={state} />
            ))}
            <Flag text="1 flagged" />
            <EndCounts ends={ENDS} />
          </div>
          <EndBar ends={ENDS} planned={60} />
          <Progress done={30} total={100} noun="rows" />
          <div className={inARow}>
            <Badge>plain</Badge>
            <Badge tone="error">stale</Badge>
            <Badge tone="accent">live</Badge>
            <Badge tone="flag">to decide</Badge>
          </div>
        </Shown>
        <Shown title="Figures and charts">
          <Figures>
            <Figure name="Pass rate" value="68 %">
              <EstimateBar value={{ mean: 0.68, low: 0.52, high: 0.84, n: 47 }} />
              95 % interval 52–84 %
            </Figure>
            <Figure name="Trend" value="71 %">
              <Trend points={POINTS} said="Pass rate: 40 to 71 %" />
            </Figure>
            <Figure name="Scores">
              <Histogram bars={BARS} />
            </Figure>
          </Figures>
        </Shown>
        <Shown title="Forms">
          <Faults.Provider value={FAULTS}>
            <TextField label="Name" value="" change={nothing} placeholder="empty" required />
            <TextField label="Wrong" path="broken" value="taken" change={nothing} />
            <TextField label="Disabled" value="cannot be changed" change={nothing} disabled />
            <TextField label="Long" lines={3} value={LONG} change={nothing} about="Some lines." />
          </Faults.Provider>
          <Choice
            label="One of a few"
            value="a"
            options={[
              ["a", "the first"],
              ["b", "the second"],
            ]}
            change={nothing}
          />
          <Pick label="One of many" value={word} change={setWord} options={WORDS} isFree />
          <Search label="Search" placeholder="Name" value="" change={nothing} />
          <Drop words="Drop a file, or" label="A file" accept=".jsonl" take={nothing} />
        </Shown>
        <Shown title="Tabs">
          <Tabs
            label="Tabs"
            tabs={["a", "b", "c", "d", "e", "f"].map((key) => [key, `Tab ${key}, of six`] as const)}
            chosen={tab}
            choose={setTab}
          >
            What tab {tab} shows.
          </Tabs>
          <PageTabs
            label="Pages"
            pages={[
              ["/", "This page"],
              ["/other", "Another page"],
            ]}
          />
        </Shown>
        <Shown title="Lists">
          <Table
            columns={[
              { name: "Name", kind: "name", show: (one) => one },
              { name: "Outcome", show: () => <Outcome state="fail" text="0.40" /> },
              {
                name: "When",
                kind: "number",
                from: "md",
                show: () => (
                  <>
                    <When at="2026-11-20T10:00:00+00:00" />
                    <Below>by ada</Below>
                  </>
                ),
              },
            ]}
            items={["short", LONG]}
            keyOf={(one) => one}
          />
          <Grid<string>
            label="Ten thousand rows"
            name={["gallery"]}
            total={10_000}
            columns={[
              { name: "Case", track: "minmax(80px, 1fr)", show: (one) => one, sort: "case" },
              { name: "Length", track: "80px", kind: "number", show: (one) => one.length },
            ]}
            load={async (wanted) => ({
              items: Array.from({ length: wanted.limit }, (_, n) => `case-${n}`),
              next: null,
            })}
            chosen={at}
            choose={setAt}
            sorting={{ by: "case", isDescending: false, change: nothing }}
          />
          <Disclosure head="A row that opens" isOpen>
            {() => "What is inside."}
          </Disclosure>
          <Named
            rows={[
              ["Database", "SQLite"],
              ["A long one", LONG],
            ]}
          />
        </Shown>
        <Shown title="Texts">
          <Command text="assay demo" />
          <TextBlock title="Answer" text={`${LONG}\n<b>not markup</b>`} />
          <DiffView label="A difference" lines={["@@ -1 +1 @@", "-old", "+new", " same"]} />
        </Shown>
        <Shown title="Nothing, waiting, wrong">
          <Empty title="No runs yet" command="assay run CASES">
            <p>Cases, their agents and models, graded and stored.</p>
          </Empty>
          <Notice>Something to know first.</Notice>
          <Notice tone="accent">Something that is news.</Notice>
          <ProblemBox problem={PROBLEM} retry={nothing} />
          <Boundary>
            <Failing />
          </Boundary>
        </Shown>
        <Shown title="Dialogs">
          <div className={inARow}>
            <Button onPress={() => setOpen("dialog")}>Open a dialog</Button>
            <Button onPress={() => setOpen("confirm")}>Open a question</Button>
          </div>
          {open === "dialog" && (
            <FormDialog
              title="A dialog"
              action="Save"
              work={{ isPending: false, error: PROBLEM }}
              close={() => setOpen("")}
              submit={nothing}
            >
              <TextField label="Written first" value="" change={nothing} />
            </FormDialog>
          )}
          {open === "confirm" && (
            <Confirm
              title="Delete exact?"
              action="Delete"
              work={{ isPending: false, error: null }}
              close={() => setOpen("")}
              confirm={() => setOpen("")}
            >
              Its 3 versions will be gone for good.
            </Confirm>
          )}
        </Shown>
      </Stack>
      <Toasts />
    </Page>
  );
}

function Failing(): ReactNode {
  throw PROBLEM;
}

const root = document.getElementById("root");
if (root) {
  createRoot(root, ROOT).render(
    <QueryClientProvider client={new QueryClient()}>
      <MemoryRouter>
        <Gallery />
      </MemoryRouter>
    </QueryClientProvider>,
  );
}
