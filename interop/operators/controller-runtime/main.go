// An operator for sites on unmodified controller-runtime: a manager with leader election, cached reads, owned objects,
// status, events and a finalizer. Its argument is a kubeconfig. It runs until it is killed.
package main

import (
	"context"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "example.com/goodbye"

type siteReconciler struct {
	client.Client
	events record.EventRecorder
}

func (r *siteReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := r.Get(ctx, request.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, &site)
	}
	if controllerutil.AddFinalizer(&site, finalizer) {
		if err := r.Update(ctx, &site); err != nil {
			return ctrl.Result{}, err
		}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		setDeploymentSpec(&site, deployment)
		return controllerutil.SetControllerReference(&site, deployment, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if result != controllerutil.OperationResultNone {
		r.events.Eventf(&site, corev1.EventTypeNormal, "Deployed", "deployment %s", result)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	if _, err := controllerutil.CreateOrPatch(ctx, r.Client, service, func() error {
		service.Spec.Selector = map[string]string{"site": site.Name}
		service.Spec.Ports = []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}
		return controllerutil.SetControllerReference(&site, service, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	before := site.Status
	site.Status = SiteStatus{ObservedGeneration: site.Generation, Replicas: deployment.Status.Replicas}
	if site.Status == before {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, &site)
}

// finalize creates a ConfigMap for the deleted site, then removes the finalizer.
func (r *siteReconciler) finalize(ctx context.Context, site *Site) error {
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: site.Name + "-goodbye", Namespace: site.Namespace}}
	if err := r.Create(ctx, note); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	controllerutil.RemoveFinalizer(site, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, site))
}

func setDeploymentSpec(site *Site, deployment *appsv1.Deployment) {
	labels := map[string]string{"site": site.Name}
	deployment.Spec.Replicas = &site.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	if len(deployment.Spec.Template.Spec.Containers) == 0 {
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "site"}}
	}
	deployment.Spec.Template.Spec.Containers[0].Image = site.Spec.Image
}

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	scheme.AddKnownTypes(groupVersion, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(scheme, groupVersion)

	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		LeaderElection:          true,
		LeaderElectionID:        "sites.example.com",
		LeaderElectionNamespace: "default",
		Metrics:                 server.Options{BindAddress: "0"},
	})
	must(err)
	reconciler := &siteReconciler{Client: manager.GetClient(), events: manager.GetEventRecorderFor("sites")}
	must(ctrl.NewControllerManagedBy(manager).
		For(&Site{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Complete(reconciler))
	must(manager.Start(ctrl.SetupSignalHandler()))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
