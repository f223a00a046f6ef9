from web.src.labels.test_labels import *
def test_shots(filled, here, open_page):
    label_all(here,"ada",field="city"); label_all(here,"bo",field="city",wrong=5)
    label_all(here,"ada",field="tone")
    for body in ({"grader":"says-yes","field":"tone"},{"grader":"says-yes","field":"city","repeats":3,"attacks":True}):
        r=here.post("/api/v1/projects/default/calibrations",json=body); print(r.text[:300])
    d={"graders":[{"type":"contains","substring":"Paris"}]}
    print(filled.http.put("/api/v1/projects/default/graders/says-yes",json={"kind":"declared","definition":d},headers={"If-Match":"*"}).text[:100])
    r=here.post("/api/v1/projects/default/calibrations",json={"grader":"says-yes","field":"city"}); print(r.text[:300]); card=r.json()["card"]
    for name,path in {"queue":"labels/queue?dataset=capitals&field=q&rater=ada&criterion=The+answer+names+the+capital","start":"labels/queue","labels":"labels","set":"labels/set?field=city","cards":"calibrations","new":"calibrations?new=1","card":f"calibrations/{card}","over":"labels/queue?dataset=capitals&field=city&rater=ada"}.items():
        page=open_page("/p/default/"+path); page.wait_for_timeout(700)
        for scheme in ("light","dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"/tmp/lab-{name}-{scheme}.png", full_page=(name=="card"))
        page.close()
